// OpenAI's agents for JavaScript: a tool, a stream and a form, by responses and by chats.
import assert from "node:assert";
import { Agent, run, setDefaultOpenAIClient, setOpenAIAPI, setTracingDisabled, tool } from "@openai/agents";
import OpenAI from "openai";
import { z } from "zod";

const { BASE_URL: baseURL, API_KEY: apiKey, MODEL: model } = process.env;
setDefaultOpenAIClient(new OpenAI({ baseURL, apiKey }));
setTracingDisabled(true);
let called = "";
const parameters = z.object({ city: z.string() });
const execute = async ({ city }) => (called = city);
const get_weather = tool({ name: "get_weather", description: "Get the weather in a city.", parameters, execute });
const modelSettings = { temperature: 0, maxTokens: 80 };
const outputType = z.object({ size: z.enum(["small", "large"]) });
for (const api of ["responses", "chat_completions"]) {
  setOpenAIAPI(api);
  const weather = new Agent({ name: "weather", instructions: "Tell the weather.", model, tools: [get_weather], modelSettings });
  const streamed = await run(weather, "What is the weather in Paris?", { stream: true, maxTurns: 3 });
  for await (const _ of streamed);
  await streamed.completed;
  assert.equal(called, "Paris");
  assert(streamed.finalOutput);
  const chooser = new Agent({ name: "chooser", instructions: "Choose.", model, outputType, modelSettings });
  assert(outputType.parse((await run(chooser, "Choose one.")).finalOutput));
  called = "";
}
