-- The bucket of one destination: reattempt_fleet::rule::settle, with the same integers.
-- KEYS[1]: the bucket. ARGV: the tokens earned, the cost and the tokens that the bucket must have at least, in
-- millionths, and a mark that the reply repeats.
local CAPACITY, MOST, TIME_TO_LIVE = 10000000, 100000000000, 40000
local FACTORS = {65491, 65445, 65355, 65174, 64813, 64098, 62692, 59972, 54880, 45957, 32227, 15848, 3832, 224, 1}
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local earned, cost, least = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])

local tokens, at = CAPACITY, now
local value = redis.pcall('GET', KEYS[1])
if type(value) == 'string' then
  local first, second = string.match(value, '^(%d+) (%d+)$')
  if first and #first <= 15 and #second <= 15 and tonumber(first) <= MOST then
    tokens, at = tonumber(first), tonumber(second)
  end
end

if at > now + TIME_TO_LIVE then at = now end
local passed = math.min(math.max(now - at, 0), TIME_TO_LIVE)
if tokens < CAPACITY then
  tokens = math.min(CAPACITY, tokens + 500 * passed)
else
  local excess = tokens - CAPACITY
  for _, factor in ipairs(FACTORS) do
    if passed % 2 == 1 then excess = math.floor(excess * factor / 65536) end
    passed = math.floor(passed / 2)
  end
  if passed > 0 then excess = 0 end
  tokens = CAPACITY + excess
end
tokens = math.min(MOST, tokens + math.min(earned, MOST))
at = math.max(at, now)

local granted = 0
if tokens >= cost and tokens >= least then
  tokens, granted = tokens - cost, 1
end
redis.call('SET', KEYS[1], string.format('%.0f %.0f', tokens, at), 'PX', TIME_TO_LIVE)
return {granted, ARGV[4]}
