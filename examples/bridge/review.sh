#!/usr/bin/env bash
# Has files reviewed, one question each, and then all reviews summed up.
#
#   crosspoint bridge run --max-iterations 20 -- ./review.sh FILE...
#
# The script begins at its beginning each time it is run. What was answered before is answered at once, so it gets one question further each time.
# Prompts go in by standard input: everybody can see the words of a command, and the system allows few of them.
set -euo pipefail

reviews=
for file in "$@"; do
    [ "$file" != --resume ] || continue
    prompt="Review $file. Answer with JSON: {\"verdict\": ...}

$(cat -- "$file")"
    # 42 is for the driver: an agent is needed. 1 is that the agent failed, and then the script goes on without it.
    review=$(crosspoint bridge ask review --inner json <<< "$prompt") || {
        code=$?
        [ "$code" = 1 ] || exit "$code"
        review='{"verdict": "nobody could review it"}'
    }
    reviews+="$file: $review"$'\n'
done

# The shortest form: whatever goes wrong ends the script.
summary=$(crosspoint bridge ask summarise --phase-name summary <<< "Sum these reviews up: $reviews") || exit
# Only now: what is printed before a question is printed again each time.
printf %s "$reviews" >&2
echo "$summary"
