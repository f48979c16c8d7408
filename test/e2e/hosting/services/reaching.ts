import { once } from "node:events";
import { get, type IncomingMessage } from "node:http";
import { text } from "node:stream/consumers";
import { api, service } from "tessera-platform";
import * as z from "zod";

/** Fetches what it is told to, through whatever the platform has set. */
export default service({
  name: "reaching",
  endpoints: {
    fetch: api({ input: { url: z.string() } }, async ({ url }) => {
      try {
        const answer = await fetch(url);
        return `${answer.status} ${await answer.text()}`;
      } catch {
        return "failed";
      }
    }),
    ask: api({ input: { url: z.string() } }, async ({ url }) => {
      try {
        const [res] = (await once(get(url), "response")) as [IncomingMessage];
        return `${res.statusCode} ${await text(res)}`;
      } catch {
        return "failed";
      }
    }),
    variable: api({ input: { name: z.string() } }, async ({ name }) => process.env[name] ?? null),
  },
});
