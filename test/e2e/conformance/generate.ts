/** Writes gen/ anew: `node test/e2e/conformance/generate.ts`, after a change of the suite's version. */
import { fileURLToPath } from "node:url";
import { generate } from "./suite.ts";

await generate(fileURLToPath(new URL("gen", import.meta.url)));
