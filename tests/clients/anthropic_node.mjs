// Anthropic's SDK for Node: a message, a stream, tools that it runs by itself, and how many tokens it will be.
import assert from "node:assert";
import Anthropic from "@anthropic-ai/sdk";

const { BASE: baseURL, API_KEY: apiKey, MODEL: model } = process.env;
const client = new Anthropic({ baseURL, apiKey });
const asked = { model, max_tokens: 40, messages: [{ role: "user", content: "Tell me a story about a fox." }] };
const message = await client.messages.create(asked);
assert(message.content[0].text && message.usage.output_tokens === 40);
const stream = client.messages.stream(asked);
let text = "";
stream.on("text", (piece) => (text += piece));
assert((await stream.finalMessage()).content[0].text === text);
const { max_tokens, ...counted } = asked;
assert((await client.messages.countTokens(counted)).input_tokens > 5);
const tool = {
  type: "custom",
  name: "get_weather",
  description: "Get the weather in a city.",
  input_schema: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
  parse: (input) => input,
  run: async ({ city }) => `Sunny in ${city}.`,
};
const weather = [{ role: "user", content: "What is the weather in Paris?" }];
const runner = client.beta.messages.toolRunner({
  model, max_tokens: 80, temperature: 0, messages: weather, tools: [tool], max_iterations: 2,
});
const said = [];
for await (const one of runner) said.push(one);
const call = said[0].content.find((block) => block.type === "tool_use");
assert.deepEqual(call.input, { city: "Paris" });
assert(said.length === 2);
for await (const one of client.models.list()) assert(one.id);
