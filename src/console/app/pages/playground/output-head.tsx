/** The head of the panel of a result: the state of the call, how long it took, and what can be done. */
import type { ReactNode } from "react";

interface OutputHeadProps {
  /** Default: nothing was called. */
  readonly state?: ReactNode;
  readonly took?: ReactNode;
  readonly children?: ReactNode;
}

export function OutputHead({ state, took, children }: OutputHeadProps) {
  return (
    <div className="card-head output-head">
      <h2>Result</h2>
      {state}
      <span className="hint">{took}</span>
      {children}
    </div>
  );
}
