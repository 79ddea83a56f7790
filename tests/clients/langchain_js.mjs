// LangChain for JavaScript: replies, streams, forms and tools by chats, responses, Ollama's protocol and Anthropic's.
import assert from "node:assert";
import { ChatAnthropic } from "@langchain/anthropic";
import { tool } from "@langchain/core/tools";
import { ChatOllama } from "@langchain/ollama";
import { ChatOpenAI, OpenAIEmbeddings } from "@langchain/openai";
import { z } from "zod";

const { BASE, BASE_URL: baseURL, API_KEY: apiKey, MODEL: model } = process.env;
const asked = { model, apiKey, configuration: { baseURL }, maxTokens: 80, temperature: 0 };
const headers = { Authorization: `Bearer ${apiKey}` };
const models = [
  new ChatOpenAI(asked),
  new ChatOpenAI({ ...asked, useResponsesApi: true }),
  new ChatOllama({ model, baseUrl: BASE, headers, numPredict: 80, temperature: 0 }),
  new ChatAnthropic({ model, apiKey, anthropicApiUrl: BASE, maxTokens: 80, temperature: 0 }),
];
const schema = z.object({ city: z.string() });
const get_weather = tool(async () => "sunny", { name: "get_weather", description: "Get the weather in a city.", schema });
const size = z.object({ size: z.enum(["small", "large"]) });
for (const one of models) {
  assert((await one.invoke("Hello")).text);
  let text = "";
  for await (const chunk of await one.stream("Hello")) text += chunk.text;
  assert(text);
  assert(size.parse(await one.withStructuredOutput(size, { name: "choice" }).invoke("Choose one.")));
  const { tool_calls } = await one.bindTools([get_weather]).invoke("What is the weather in Paris?");
  assert.deepEqual(tool_calls[0].args, { city: "Paris" });
}
assert((await new OpenAIEmbeddings(asked).embedQuery("fox")).length > 1);
