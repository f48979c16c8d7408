/** Reads what a deployment says of itself. */
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { type DescriptionDocuments, readEndpoint } from "./description.ts";
import { readMounts } from "./mounts.ts";
import type { PlaygroundTarget } from "./target.ts";

/** The name of the service, its endpoints and its servers; a form goes on while those of a new revision are read. */
export const useDescription = ({ name, version, send }: PlaygroundTarget) =>
  useQuery({
    queryKey: ["description", name, version],
    queryFn: async ({ signal }) => {
      const read = async (path: string) => (await send(path, { signal })).json();
      const schema: DescriptionDocuments["schema"] = await read("/schema.json");
      const docs: DescriptionDocuments["docs"] = await read("/docs.json");
      const endpoints = schema.routes.map((route) => readEndpoint(route, docs));
      return { name: schema.name, endpoints, mounts: readMounts(docs), document: docs };
    },
    staleTime: Number.POSITIVE_INFINITY,
    placeholderData: keepPreviousData,
  });
