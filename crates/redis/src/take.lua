-- The bucket of one rate limit: reattempt_fleet::rate::take, with the same integers.
-- KEYS[1]: the bucket. ARGV: tokens per second, burst, tokens wanted, and a mark that the reply repeats.
local TOKEN, MOST, CATCH_UP = 1000000, 100000000000, 5000
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local per_second, burst, wanted = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local time_to_live = math.floor(burst * 1000 / per_second) + 20000

local tokens, at, granted_at = MOST, now, now
local value = redis.pcall('GET', KEYS[1])
if type(value) == 'string' then
  local first, second, third = string.match(value, '^(%d+) (%d+) (%d+)$')
  if first and #first <= 15 and #second <= 15 and #third <= 15 and tonumber(first) <= MOST then
    tokens, at, granted_at = tonumber(first), tonumber(second), tonumber(third)
  end
end

if at > now + CATCH_UP then at = now end
-- A product that is too long for an exact number is longer than any burst.
tokens = math.min(burst * TOKEN, tokens + per_second * (TOKEN / 1000) * math.max(now - at, 0))
at = math.max(at, now)

local granted = math.min(wanted, math.floor(tokens / TOKEN))
if granted > 0 then granted_at = now end
tokens = tokens - granted * TOKEN
redis.call('SET', KEYS[1], string.format('%.0f %.0f %.0f', tokens, at, granted_at), 'PX', time_to_live)
return {{granted, granted_at}, ARGV[4]}
