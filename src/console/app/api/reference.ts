/** The platform's OpenAPI document, as the server makes it. */
import { queryOptions } from "@tanstack/react-query";
import { getJson } from "./get-json.ts";
import type { OpenApi } from "./openapi.ts";

/** It does not change while the server runs. */
export const reference = queryOptions({
  queryKey: ["reference"],
  queryFn: ({ signal }) => getJson("/docs.json", signal) as Promise<OpenApi>,
  staleTime: Number.POSITIVE_INFINITY,
});
