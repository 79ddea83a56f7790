// Claude Code in one shot, through Anthropic's protocol.
import assert from "node:assert";
import { execFileSync } from "node:child_process";

const { BASE, API_KEY, MODEL } = process.env;
const said = execFileSync(
  "claude",
  ["-p", "Say hello", "--system-prompt", "You are a helpful assistant.", "--output-format", "json"],
  {
    env: {
      ...process.env,
      ANTHROPIC_BASE_URL: BASE,
      ANTHROPIC_AUTH_TOKEN: API_KEY,
      ANTHROPIC_MODEL: MODEL,
      ANTHROPIC_SMALL_FAST_MODEL: MODEL,
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
      CLAUDE_CODE_MAX_OUTPUT_TOKENS: "256",
    },
    stdio: ["ignore", "pipe", "pipe"],
    timeout: 300_000,
  },
);
const result = JSON.parse(said.toString());
assert(!result.is_error && result.usage.output_tokens > 0, said.toString());
