// promptfoo: prompts with checks of form and likeness, by seven of its providers.
import assert from "node:assert";
import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";

const { BASE, BASE_URL: apiBaseUrl, API_KEY: apiKey, MODEL, NODE_PATH } = process.env;
const config = { apiBaseUrl, apiKey, max_tokens: 60, temperature: 0 };
const schema = { type: "object", properties: { size: { enum: ["small", "large"] } }, required: ["size"] };
schema.additionalProperties = false;
const response_format = { type: "json_schema", json_schema: { name: "choice", strict: true, schema } };
const similar = { type: "similar", value: "a fox", threshold: -1 };
similar.provider = { id: `openai:embedding:${MODEL}`, config };
const plain = [
  { id: `openai:chat:${MODEL}`, config },
  { id: `openai:responses:${MODEL}`, config: { ...config, max_output_tokens: 60 } },
  { id: `openai:completion:${MODEL}`, config },
  { id: `anthropic:messages:${MODEL}`, config: { ...config, apiBaseUrl: BASE } },
  { id: `ollama:chat:${MODEL}`, config: { num_predict: 60 } },
  { id: `ollama:completion:${MODEL}`, config: { num_predict: 60 } },
];
const suites = {
  plain: { providers: plain, tests: [{ assert: [{ type: "javascript", value: "output.length > 0" }, similar] }] },
  form: {
    providers: [{ id: `openai:chat:${MODEL}`, config: { ...config, response_format } }],
    tests: [{ assert: [{ type: "is-json", value: schema }] }],
  },
};
const env = { ...process.env, OLLAMA_BASE_URL: BASE, OLLAMA_API_KEY: apiKey };
Object.assign(env, { PROMPTFOO_DISABLE_TELEMETRY: "1", PROMPTFOO_DISABLE_UPDATE: "1", PROMPTFOO_CACHE_ENABLED: "false" });
for (const [name, suite] of Object.entries(suites)) {
  writeFileSync(`${name}.json`, JSON.stringify({ prompts: ["Tell me a story about a"], ...suite }));
  const options = ["eval", "-c", `${name}.json`, "-o", `${name}.out.json`, "--no-table", "--no-progress-bar", "-j", "1"];
  const said = spawnSync(`${NODE_PATH}/.bin/promptfoo`, options, { env, encoding: "utf8", timeout: 250_000 });
  const { results } = JSON.parse(readFileSync(`${name}.out.json`, "utf8")).results;
  assert.equal(results.length, suite.providers.length, said.stderr);
  for (const one of results) assert(one.success, `${one.provider.id}: ${one.error}`);
}
