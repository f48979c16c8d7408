import type { ServiceManifest } from "../../../src/protocol/manifest.ts";
import { endpoint } from "../../service/manifests.ts";

const texts = {
  type: "array",
  items: { type: "string", minLength: 1 },
  description: "What to shorten.",
};
const sentences = {
  type: "integer",
  minimum: 1,
  maximum: 20,
  default: 3,
  description: "How many sentences to keep.",
};

/** A service with one endpoint of every sort that the page has to show. */
export const SERVICE: ServiceManifest = {
  name: "gallery",
  endpoints: [
    endpoint({
      name: "summarize",
      description: "Shortens a text to its most telling sentences, in their own words and order.",
      input: {
        type: "object",
        properties: {
          text: { type: "string", minLength: 1, description: "The text to shorten." },
          sentences,
          style: { enum: ["plain", "headline"], default: "plain" },
          polite: { type: "boolean" },
          shout: { type: "boolean", default: false },
          options: { $ref: "#/$defs/Options" },
        },
        required: ["text"],
        $defs: {
          Options: {
            type: "object",
            properties: { seed: { type: "integer" } },
            required: ["seed"],
          },
        },
      },
      output: { type: "string" },
    }),
    endpoint({
      name: "summarize_batch",
      kind: "task",
      description: "Shortens many texts, one after the other.",
      input: { type: "object", properties: { texts, sentences }, required: ["texts"] },
      output: { type: "array", items: { type: "string" } },
    }),
    endpoint({
      name: "contact_sheet",
      kind: "task",
      description: "Puts images on one sheet.",
      input: {
        type: "object",
        properties: { columns: { type: "integer", minimum: 1, default: 4 } },
      },
      outputFile: { contentType: "image/png" },
    }),
    endpoint({
      name: "classify",
      description: "Says which digit a picture shows.",
      input: {
        type: "object",
        properties: {
          image: { type: "string", format: "binary", description: "A picture of one digit." },
          labels: { type: "array", items: { type: "string" }, default: ["a"] },
        },
        required: ["image"],
      },
      files: { image: { required: true, array: false, contentType: "image/*" } },
      output: { type: "object" },
    }),
    endpoint({
      name: "tell",
      description: "Tells a story as it comes to mind.",
      output: { type: "string" },
      stream: { pieces: "text" },
    }),
    endpoint({ name: "broken", kind: "task", description: "Always fails.", output: {} }),
  ],
};
