/** What the README of the client's package calls. */
import { api, service, stream, task } from "tessera-platform";
import * as z from "zod";

export default service({
  name: "greeter",
  endpoints: {
    greet: api(
      { input: { name: z.string() }, output: z.string() },
      ({ name }) => `Hello, ${name}!`,
    ),
    add: task({ input: { numbers: z.array(z.number()) }, output: z.number() }, ({ numbers }) =>
      numbers.reduce((sum, number) => sum + number, 0),
    ),
    tell: api(
      { input: { words: z.int() }, output: stream(z.string()) },
      async function* ({ words }) {
        for (let word = 1; word <= words; word += 1) {
          yield `word ${word}`;
        }
      },
    ),
  },
});
