// OpenRouter's own client, which checks every field that comes back: chats, streams, tools, responses and vectors.
import assert from "node:assert";
import { OpenRouter } from "@openrouter/sdk";

const { BASE_URL: serverURL, API_KEY: apiKey, MODEL: model } = process.env;
const client = new OpenRouter({ serverURL, apiKey, retryConfig: { strategy: "none" } });
const send = (chatRequest) => client.chat.send({ chatRequest: { model, maxTokens: 80, temperature: 0, ...chatRequest } });
const parameters = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const tools = [{ type: "function", function: { name: "get_weather", description: "Get the weather.", parameters } }];
const messages = [{ role: "user", content: "What is the weather in Paris?" }];
const { message } = (await send({ messages, tools })).choices[0];
assert.deepEqual(JSON.parse(message.toolCalls[0].function.arguments), { city: "Paris" });
messages.push(message, { role: "tool", toolCallId: message.toolCalls[0].id, content: "sunny" });
assert((await send({ messages, tools })).choices[0].message.content);
let text = "";
let usage;
for await (const chunk of await send({ messages: [{ role: "user", content: "Hello" }], stream: true })) {
  text += chunk.choices[0]?.delta.content ?? "";
  usage ??= chunk.usage;
}
assert(text);
let calls = 0;
for await (const chunk of await send({ messages: messages.slice(0, 1), tools, stream: true }))
  calls += chunk.choices[0]?.delta.toolCalls?.length ?? 0;
assert(calls);
const asked = { model, input: "Hello", maxOutputTokens: 40 };
const reply = await client.beta.responses.send({ responsesRequest: asked });
assert(reply.output.length);
const kinds = [];
for await (const event of await client.beta.responses.send({ responsesRequest: { ...asked, stream: true } }))
  kinds.push(event.type);
assert(kinds.includes("response.output_text.delta"), kinds.join());
const vectors = await client.embeddings.generate({ requestBody: { model, input: "fox" } });
assert(vectors.data[0].embedding.length > 1);
