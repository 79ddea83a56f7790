// Hugging Face's client for inference and its tiny agent: chats, streams, a form and an agent's reply.
import assert from "node:assert";
import { InferenceClient } from "@huggingface/inference";
import { Agent } from "@huggingface/tiny-agents";

const { BASE_URL: endpointUrl, API_KEY: accessToken, MODEL: model } = process.env;
const client = new InferenceClient(accessToken, { endpointUrl });
const messages = [{ role: "user", content: "Hello" }];
const asked = { model, messages, max_tokens: 80, temperature: 0 };
assert((await client.chatCompletion(asked)).choices[0].message.content);
let text = "";
for await (const chunk of client.chatCompletionStream(asked)) text += chunk.choices[0]?.delta.content ?? "";
assert(text);
const schema = { type: "object", properties: { size: { enum: ["small", "large"] } }, required: ["size"] };
const response_format = { type: "json_schema", json_schema: { name: "choice", schema } };
const form = await client.chatCompletion({ ...asked, response_format });
assert(["small", "large"].includes(JSON.parse(form.choices[0].message.content).size));
const agent = new Agent({ endpointUrl, apiKey: accessToken, model, servers: [] });
await agent.loadTools();
let said = "";
for await (const part of agent.run("Hello")) said += part.choices?.[0]?.delta.content ?? "";
assert(said);
