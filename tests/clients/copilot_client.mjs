// GitHub's Copilot CLI in one shot, without GitHub: a model of one's own, through chat.
import assert from "node:assert";
import { execFileSync } from "node:child_process";

const { BASE_URL, API_KEY, MODEL } = process.env;
const options = ["-p", "Say hello", "--output-format", "json", "--disable-builtin-mcps", "--available-tools", "view"];
const said = execFileSync("copilot", options, {
  env: {
    ...process.env,
    COPILOT_OFFLINE: "true",
    COPILOT_PROVIDER_BASE_URL: BASE_URL,
    COPILOT_PROVIDER_API_KEY: API_KEY,
    COPILOT_PROVIDER_MAX_PROMPT_TOKENS: "30000",
    COPILOT_PROVIDER_MAX_OUTPUT_TOKENS: "256",
    COPILOT_MODEL: MODEL,
  },
  stdio: ["ignore", "pipe", "pipe"],
  timeout: 300_000,
});
const events = said.toString().trim().split("\n").map((line) => JSON.parse(line));
assert(events.some((event) => event.type === "assistant.message"), said.toString());
