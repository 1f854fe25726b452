//! Checks that what is printed comes out unchanged, however it is cut.

use super::*;

/// Returns all pieces of texts that arrive one after the other, and then end.
fn pieces(texts: &[&[u8]]) -> Vec<Piece> {
    let mut lines = Lines::new();
    let mut pieces = Vec::new();
    for text in texts {
        lines.room().extend_from_slice(text);
        pieces.extend(std::iter::from_fn(|| lines.take(More::Comes)));
    }
    pieces.extend(std::iter::from_fn(|| lines.take(More::Never)));
    pieces
}

fn output(text: &'static [u8]) -> Piece {
    Piece::Output(Bytes::from_static(text))
}

fn directive(text: &'static [u8]) -> Piece {
    Piece::Directive(Bytes::from_static(text))
}

#[test]
fn lines_come_together_and_ours_apart() {
    let printed = b"one\ntwo\n@crosspoint {\"progress\": 1}\nthree\nfour";
    let expected =
        [output(b"one\ntwo\n"), directive(b"@crosspoint {\"progress\": 1}\n"), output(b"three\n"), output(b"four")];
    assert_eq!(pieces(&[printed]), expected);
}

#[test]
fn it_does_not_matter_where_what_comes_is_cut() {
    let printed = "a\n@crosspoint {\"x\": 1}\n@crosspointless\nb @crosspoint {}\n@\n\n@crosspoint {}\nend".as_bytes();
    for middle in 0..=printed.len() {
        for second in middle..=printed.len() {
            let pieces = pieces(&[&printed[..middle], &printed[middle..second], &printed[second..]]);
            let all: Vec<u8> = pieces
                .iter()
                .flat_map(|piece| match piece {
                    Piece::Output(bytes) | Piece::Directive(bytes) => bytes.to_vec(),
                    Piece::TooLong => Vec::new(),
                })
                .collect();
            assert_eq!(all, printed);
            let ours = pieces.iter().filter(|piece| matches!(piece, Piece::Directive(_))).count();
            assert_eq!(ours, 2, "cut at {middle} and {second}");
        }
    }
}

#[test]
fn a_line_that_has_not_ended_waits_and_then_goes() {
    let mut lines = Lines::new();
    lines.room().extend_from_slice("Name? ü".as_bytes().split_last().expect("it is long").1);
    assert_eq!(lines.take(More::Comes), None);
    assert!(lines.is_waiting());
    // The incomplete character stays.
    assert_eq!(lines.take(More::Late), Some(output(b"Name? ")));
    assert_eq!(lines.take(More::Late), None);
    lines.room().extend_from_slice(&"ü".as_bytes()[1..]);
    assert_eq!(lines.take(More::Late), Some(Piece::Output(Bytes::from_static("ü".as_bytes()))));
    // In the middle of a line nothing is a directive.
    lines.room().extend_from_slice(b"@crosspoint {}\n");
    assert_eq!(lines.take(More::Comes), Some(output(b"@crosspoint {}\n")));
}

#[test]
fn a_line_that_may_become_ours_waits_for_its_end() {
    for beginning in [&b"@"[..], b"@cross", b"@crosspoint ", b"@crosspoint {\"progress\""] {
        let mut lines = Lines::new();
        lines.room().extend_from_slice(beginning);
        assert!(!lines.is_waiting());
        assert_eq!(lines.take(More::Late), None);
    }
    assert_eq!(pieces(&[b"@cross"]), [output(b"@cross")]);
    assert_eq!(pieces(&[b"@crosspoint {}"]), [directive(b"@crosspoint {}")]);
}

#[test]
fn a_line_longer_than_a_block_flows_and_no_character_is_cut() {
    let long = "ü".repeat(BLOCK_BYTES_MAX) + "\nlast\n";
    let odd = [b"x", long.as_bytes()].concat();
    let pieces = pieces(&[&odd]);
    assert_eq!(pieces.len(), 3);
    for piece in &pieces {
        let Piece::Output(block) = piece else { panic!("{piece:?}") };
        assert!(block.len() <= BLOCK_BYTES_MAX && std::str::from_utf8(block).is_ok());
    }
}

#[test]
fn bytes_that_are_no_characters_go_through() {
    let printed = [0xff_u8, 0xfe, b'\n', 0xc3];
    assert_eq!(pieces(&[&printed]), [output(&[0xff, 0xfe, b'\n']), output(&[0xc3])]);
    let mut lines = Lines::new();
    lines.room().extend_from_slice(&[0xff, 0xc3]);
    assert_eq!(lines.take(More::Late), Some(output(&[0xff, 0xc3])));
}

#[test]
fn a_line_of_ours_that_is_too_long_is_said_to_be_and_flows_on() {
    let long = [PREFIX, &vec![b'x'; LINE_BYTES_MAX], b"\n@crosspoint {}\n"].concat();
    let pieces = pieces(&[&long]);
    assert_eq!(pieces.first(), Some(&Piece::TooLong));
    assert_eq!(pieces.iter().filter(|piece| **piece == Piece::TooLong).count(), 1);
    assert_eq!(pieces.last(), Some(&directive(b"@crosspoint {}\n")));
}
