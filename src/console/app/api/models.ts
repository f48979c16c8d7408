/** Reads of models, again while any of them is fetched. */
import { infiniteQueryOptions } from "@tanstack/react-query";
import type {
  ListModelsResponseJson,
  ModelService,
  ModelVersionJson,
} from "../../../../gen/tessera/v1/model_pb.js";
import { createClient } from "./rpc.ts";

/** Of its own, because the other pages do not call it. */
export const models = createClient<typeof ModelService>("tessera.v1.ModelService");

/** Models that are read at once; more come on demand. */
const MAX_MODELS_PER_PAGE = 100;
/** How often they are read again while one of them is fetched. */
const IMPORTING_POLL_INTERVAL_MS = 1_000;
/** How often they are read again otherwise. */
const MODELS_POLL_INTERVAL_MS = 30_000;

export const modelsOf = (organization: string) =>
  infiniteQueryOptions({
    queryKey: ["models", organization],
    queryFn: ({ pageParam, signal }) =>
      models.listModels(
        { organization, pageSize: MAX_MODELS_PER_PAGE, pageToken: pageParam },
        { signal },
      ),
    initialPageParam: "",
    getNextPageParam: ({ nextPageToken }) => nextPageToken || undefined,
    refetchInterval: ({ state }) =>
      versionsOf(state.data?.pages).some(isImporting)
        ? IMPORTING_POLL_INTERVAL_MS
        : MODELS_POLL_INTERVAL_MS,
  });

/** The versions of all models, by name, newest first. */
export const versionsOf = (
  pages: readonly ListModelsResponseJson[] = [],
): readonly ModelVersionJson[] =>
  pages.flatMap((page) => (page.models ?? []).flatMap(({ versions = [] }) => versions));

export const isImporting = ({ state }: ModelVersionJson): boolean =>
  state === "MODEL_STATE_IMPORTING";
