// pi in one shot, by each of the three protocols that it speaks; a tool's result goes back where it calls one.
import assert from "node:assert";
import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";

const { BASE, BASE_URL, API_KEY: apiKey, MODEL: id, HOME } = process.env;
const models = [{ id, contextWindow: 32768, maxTokens: 256 }];
const protocols = { "openai-completions": BASE_URL, "openai-responses": BASE_URL, "anthropic-messages": BASE };
const providers = Object.fromEntries(
  Object.entries(protocols).map(([api, baseUrl]) => [`at-${api}`, { api, baseUrl, apiKey, models }]),
);
mkdirSync(`${HOME}/.pi/agent`, { recursive: true });
writeFileSync(`${HOME}/.pi/agent/models.json`, JSON.stringify({ providers }));
for (const provider of Object.keys(providers)) {
  const options = ["--offline", "--no-session", "--provider", provider, "--model", id, "--mode", "json", "Say hello"];
  const said = execFileSync("pi", options, { stdio: ["ignore", "pipe", "pipe"], timeout: 300_000 });
  const events = said.toString().trim().split("\n").map((line) => JSON.parse(line));
  const { messages } = events.find((event) => event.type === "agent_end");
  const replies = messages.filter((message) => message.role === "assistant");
  assert(replies.length && replies.every((reply) => !reply.errorMessage && reply.usage.output), said.toString());
}
