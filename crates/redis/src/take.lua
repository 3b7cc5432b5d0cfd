-- The bucket of one rate limit: reattempt_fleet::rate::take, with the same integers.
-- KEYS[1]: the bucket. ARGV: tokens per second, burst, tokens wanted, and a mark that the reply repeats.
local TOKEN, MOST = 1000000, 100000000000
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local per_second, burst, wanted = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local time_to_live = math.floor(burst * 1000 / per_second) + 20000

local tokens, at = MOST, now
local value = redis.pcall('GET', KEYS[1])
if type(value) == 'string' then
  local first, second = string.match(value, '^(%d+) (%d+)$')
  if first and #first <= 15 and #second <= 15 and tonumber(first) <= MOST then
    tokens, at = tonumber(first), tonumber(second)
  end
end

if at > now + time_to_live then at = now end
-- A product that is too long for an exact number is longer than any burst.
tokens = math.min(burst * TOKEN, tokens + per_second * (TOKEN / 1000) * math.max(now - at, 0))
at = math.max(at, now)

local granted = math.min(wanted, math.floor(tokens / TOKEN))
tokens = tokens - granted * TOKEN
redis.call('SET', KEYS[1], string.format('%.0f %.0f', tokens, at), 'PX', time_to_live)
return {granted, ARGV[4]}
