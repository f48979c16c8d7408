/** What a node says to a worker on another machine, and hears from it, besides calls. */
import type { AbortReason, Call, CallResult } from "../../protocol/messages.ts";
import type { Units } from "../../protocol/units.ts";

/** To the worker. */
export type RemoteMessage =
  /** `together`: one call of the function takes all of them. */
  | { readonly type: "calls"; readonly calls: readonly Call[]; readonly together: boolean }
  | { readonly type: "abort"; readonly id: number; readonly reason: AbortReason }
  | { readonly type: "more"; readonly id: number; readonly count: number }
  /** These results need not be sent again; those in `stale` counted for nothing. */
  | { readonly type: "ack"; readonly ids: readonly number[]; readonly stale: readonly number[] }
  | { readonly type: "heartbeat"; readonly sequence: number }
  /** End when the calls under way have ended. */
  | { readonly type: "drain"; readonly reason: string }
  /** Connect to a mounted server, by a tunnel of this number. */
  | { readonly type: "connect"; readonly id: number; readonly mount: string }
  /** End this tunnel, whatever of it is not read. */
  | { readonly type: "disconnect"; readonly id: number }
  /** End the WebSockets of mounted servers; each of their connections ends with its answer. */
  | { readonly type: "retire" };

/** The end of a call, as the worker tells it. */
export type RemoteResult = RemoteEnd & {
  /** What its function reported. */
  readonly units?: Units;
  /** The most memory that the worker held while it ran; undefined: not known. */
  readonly peakMemoryBytes?: number | undefined;
};

type RemoteEnd =
  | CallResult
  | { readonly id: number; readonly aborted: string }
  /** Its process died, with this call alone in it or beside others, maybe for its memory. */
  | {
      readonly id: number;
      readonly lost: string;
      readonly besideOthers: boolean;
      readonly outOfMemory: boolean;
    }
  /** It did not run. */
  | { readonly id: number; readonly displaced: string };

/** The stream to a worker, while it is connected. */
export interface RemoteStream {
  send(message: RemoteMessage): void;
  /** Nothing more is sent. `reason` is for the worker. */
  end(reason: string): void;
}

/** A call that a worker has, when it registers again. */
export interface HeldCall {
  readonly id: number;
  readonly taskId: string;
  readonly attempt: number;
  readonly endpoint: string;
}
