/** Says whether the page follows what happens. */
import type { StreamState } from "../api/use-stream.ts";
import { Status } from "./status.tsx";

export function StreamStatus({ state }: { readonly state: StreamState }) {
  return (
    <p role="status">
      {state.kind === "live" && <Status tone="good">live</Status>}
      {state.kind === "connecting" && <Status tone="working">connecting</Status>}
      {state.kind === "reconnecting" && <Status tone="warning">reconnecting</Status>}
      {state.kind === "ended" && <Status tone="idle">complete</Status>}
      {state.kind === "failed" && <Status tone="bad">{state.message}</Status>}
    </p>
  );
}
