/** The cache of what pages have read, and how often they ask again. */
import { MutationCache, type Query, QueryCache, QueryClient } from "@tanstack/react-query";
import { isTransient } from "./errors.ts";

/** How often a call that failed for a moment is repeated before the page says so. */
const MAX_RETRIES = 3;

type ErrorListener = (err: unknown, query?: Query<unknown, unknown, unknown>) => void;

export function createQueryClient(onError: ErrorListener = () => undefined): QueryClient {
  return new QueryClient({
    queryCache: new QueryCache({ onError }),
    mutationCache: new MutationCache({ onError: (err) => onError(err) }),
    defaultOptions: {
      queries: {
        // A server on this machine answers without a network.
        networkMode: "always",
        refetchOnReconnect: true,
        staleTime: 5_000,
        retry: (failures, err) => failures < MAX_RETRIES && isTransient(err),
        retryDelay: (attempt) => Math.min(250 * 2 ** attempt, 5_000),
      },
      mutations: { networkMode: "always" },
    },
  });
}
