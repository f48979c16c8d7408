/** Reads of the person's own sessions. */
import { infiniteQueryOptions } from "@tanstack/react-query";
import { auth } from "./clients.ts";

/** Sessions that are read at once; more come on demand. */
const MAX_SESSIONS_PER_PAGE = 50;

export const sessions = infiniteQueryOptions({
  queryKey: ["sessions"],
  queryFn: ({ pageParam, signal }) =>
    auth.listSessions({ pageSize: MAX_SESSIONS_PER_PAGE, pageToken: pageParam }, { signal }),
  initialPageParam: "",
  getNextPageParam: ({ nextPageToken }) => nextPageToken || undefined,
});
