// openai for Node: chat, a stream, responses.
import assert from "node:assert";
import OpenAI from "openai";

const client = new OpenAI({ baseURL: process.env.BASE_URL, apiKey: process.env.API_KEY, maxRetries: 0 });
const model = process.env.MODEL;
const messages = [{ role: "user", content: "Tell me a story." }];
const answer = await client.chat.completions.create({ model, messages, max_tokens: 20 });
assert(answer.choices[0].message.content);
messages.push(answer.choices[0].message, { role: "user", content: "And then?" });
let text = "";
for await (const chunk of await client.chat.completions.create({ model, messages, max_tokens: 20, stream: true })) {
  text += chunk.choices[0]?.delta?.content ?? "";
}
assert(text);
const response = await client.responses.create({ model, input: "Hello", max_output_tokens: 20 });
assert(response.output_text);
