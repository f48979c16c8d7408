/** Says that the server does not answer, and asks again for what the page shows until it does. */
import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useSyncExternalStore } from "react";
import { isUnreachable } from "../api/errors.ts";

/** How often what nobody answered is asked for again. */
const RETRY_INTERVAL_MS = 3_000;

export function Connection() {
  const client = useQueryClient();
  const cache = client.getQueryCache();
  const isLost = useSyncExternalStore(
    (onChange) => cache.subscribe(onChange),
    () =>
      cache
        .findAll({ type: "active" })
        .some(({ state }) => isUnreachable(state.fetchFailureReason ?? state.error)),
  );
  useEffect(() => {
    const retry = (): void => {
      const predicate = ({ state }: { readonly state: { readonly error: unknown } }) =>
        isUnreachable(state.error);
      void client.refetchQueries({ type: "active", predicate });
    };
    const timer = isLost ? setInterval(retry, RETRY_INTERVAL_MS) : undefined;
    return () => clearInterval(timer);
  }, [client, isLost]);
  return (
    <div role="status">
      {isLost && (
        <p className="connection">
          The server cannot be reached. What you see may be old; the page goes on by itself.
        </p>
      )}
    </div>
  );
}
