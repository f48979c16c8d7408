/**
 * The service whose calls a released version stores in its fixture. `make.ts` writes the import
 * of the SDK before it, under the name that the version gives it. It brings no library, so that
 * its artifact stays small.
 */
export const SERVICE = `
const text = withJsonSchema(
  { "~standard": { version: 1, vendor: "fixture", validate: (value) => ({ value }) } },
  {
    input: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
    output: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
  },
);

export default service({
  name: "fixture",
  endpoints: {
    echo: task({ input: text }, async ({ text }, ctx) => {
      ctx.progress?.(0.5, "half");
      if (text === "fail") {
        throw new Error("it fails as asked");
      }
      if (text === "hold") {
        await new Promise((resolve) => setTimeout(resolve, 600_000));
      }
      return { said: text, secret: process.env.SECRET ?? null };
    }),
    pages: task({ input: text, output: file({ contentType: "text/plain" }) }, async ({ text }) =>
      Buffer.from(text.repeat(Math.ceil(300_000 / text.length))),
    ),
  },
});
`;
