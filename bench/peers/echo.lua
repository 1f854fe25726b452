-- What wrk sends: the same body every time, under a key of its own every time.
--
-- usage: wrk ... -s echo.lua URL -- PATH BODY_FILE KEY_PREFIX
-- Answers are not looked at here, which would cost the client as much as the request itself: wrk counts what is 400 or
-- more, and one answer before and one after the cell are compared with what was sent. Prints one line of JSON.

local threads = 0

function setup(thread)
  thread:set("thread_number", threads)
  threads = threads + 1
end

function init(arguments)
  local file = assert(io.open(arguments[2], "rb"))
  local body = file:read("*a")
  file:close()
  local head = "POST " .. arguments[1] .. " HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
  before = head .. "content-length: " .. #body .. "\r\nidempotency-key: " .. arguments[3] .. "-" .. thread_number .. "-"
  after = "\r\n\r\n" .. body
  sent = 0
end

function request()
  sent = sent + 1
  return before .. sent .. after
end

function done(summary, latency)
  local errors = summary.errors
  local bad = errors.connect + errors.read + errors.write + errors.status + errors.timeout
  io.write(string.format(
    '\n{"requests": %d, "seconds": %.3f, "p50_us": %d, "p99_us": %d, "max_us": %d, "bad": %d}\n',
    summary.requests, summary.duration / 1e6, latency:percentile(50), latency:percentile(99), latency.max, bad))
end
