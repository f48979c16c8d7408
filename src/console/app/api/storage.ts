/** Reads of what an organization stores. */
import { queryOptions } from "@tanstack/react-query";
import { organizations } from "./clients.ts";

/** How often it is read again: uploads take minutes. */
const STORAGE_USE_INTERVAL_MS = 60_000;

export const storageUseOf = (organization: string) =>
  queryOptions({
    queryKey: ["storage", organization],
    queryFn: ({ signal }) => organizations.getStorageUse({ organization }, { signal }),
    refetchInterval: STORAGE_USE_INTERVAL_MS,
  });
