// ollama for Node: a tool, a stream, vectors; and the AI SDK with its provider for Ollama.
import assert from "node:assert";
import { Ollama } from "ollama";
import { generateText, streamText, stepCountIs, tool } from "ai";
import { createOllama } from "ollama-ai-provider-v2";
import { z } from "zod";

const { BASE: host, API_KEY, MODEL } = process.env;
const headers = { Authorization: `Bearer ${API_KEY}` };
const options = { temperature: 0, num_predict: 80 };
const messages = [{ role: "user", content: "What is the weather in Paris?" }];
const parameters = { type: "object", properties: { city: { type: "string" } } };
const weather = { type: "function", function: { name: "get_weather", description: "Get the weather.", parameters } };

const client = new Ollama({ host, headers });
const first = await client.chat({ model: MODEL, messages, tools: [weather], options });
assert.deepEqual(first.message.tool_calls[0].function.arguments, { city: "Paris" });
messages.push(first.message, { role: "tool", content: "sunny", tool_name: "get_weather" });
let text = "";
for await (const part of await client.chat({ model: MODEL, messages, options, stream: true })) text += part.message.content;
assert(text);
assert((await client.embed({ model: MODEL, input: "one" })).embeddings[0].length);
assert((await client.list()).models.some((model) => model.name === `${MODEL}:latest`));

const model = createOllama({ baseURL: `${host}/api`, headers })(MODEL);
assert((await generateText({ model, prompt: "Tell me a story.", maxOutputTokens: 20 })).text);
const get_weather = tool({
  description: "Get the weather in a city.",
  inputSchema: z.object({ city: z.string() }),
  execute: async ({ city }) => ({ weather: `sunny in ${city}` }),
});
const stream = streamText({
  model,
  prompt: "What is the weather in Paris?",
  tools: { get_weather },
  temperature: 0,
  maxOutputTokens: 80,
  stopWhen: stepCountIs(2),
});
const steps = await stream.steps;
assert.deepEqual(steps[0].toolCalls[0].input, { city: "Paris" });
