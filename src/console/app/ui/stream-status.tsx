/** Says when the page does not follow what happens; that it does is seen, and told to screen readers. */
import type { StreamState } from "../api/use-stream.ts";
import { Status } from "./status.tsx";

export function StreamStatus({ state }: { readonly state: StreamState }) {
  return (
    <p role="status" className={state.kind === "live" ? "hidden" : undefined}>
      {state.kind === "live" && "live"}
      {state.kind === "reconnecting" && <Status tone="warning">reconnecting</Status>}
      {state.kind === "ended" && <Status tone="idle">complete</Status>}
      {state.kind === "failed" && <Status tone="bad">{state.message}</Status>}
    </p>
  );
}
