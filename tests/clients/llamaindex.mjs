// LlamaIndex for JavaScript: replies, streams, tools and vectors by chats, responses and Ollama's protocol.
import assert from "node:assert";
import { Ollama, OllamaEmbedding } from "@llamaindex/ollama";
import { OpenAI, OpenAIEmbedding, OpenAIResponses } from "@llamaindex/openai";
import { tool } from "llamaindex";
import { z } from "zod";

const { BASE: host, BASE_URL: baseURL, API_KEY: apiKey, MODEL: model } = process.env;
const asked = { model, apiKey, baseURL, temperature: 0 };
const config = { host, headers: { Authorization: `Bearer ${apiKey}` } };
const models = [
  new OpenAI({ ...asked, maxTokens: 80 }),
  new OpenAIResponses({ ...asked, maxOutputTokens: 80 }),
  new Ollama({ model, config, options: { num_predict: 80, temperature: 0 } }),
];
const parameters = z.object({ city: z.string() });
const get_weather = tool({ name: "get_weather", description: "Get the weather in a city.", parameters, execute: () => "sunny" });
const said = (content) => [{ role: "user", content }];
for (const one of models) {
  assert((await one.chat({ messages: said("Hello") })).message.content);
  let text = "";
  for await (const chunk of await one.chat({ messages: said("Hello"), stream: true })) text += chunk.delta;
  assert(text);
  const { message } = await one.chat({ messages: said("What is the weather in Paris?"), tools: [get_weather] });
  assert.deepEqual(message.options.toolCall.map((call) => call.name), ["get_weather"]);
}
for (const one of [new OpenAIEmbedding(asked), new OllamaEmbedding({ model, config })])
  assert((await one.getTextEmbedding("fox")).length > 1);
