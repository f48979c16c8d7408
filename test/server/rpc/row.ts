/** A request for a method of the platform, and what its callers are answered. */
import type { DescMethod } from "@bufbuild/protobuf";
import type { CallerName, Cast, Outcome } from "./callers.ts";
import type { TestPlatform } from "./platform.ts";

export interface Row {
  readonly method: DescMethod;
  /** What tells it from other rows of the method. */
  readonly variant?: string;
  /** Makes whatever the request is about, anew for each call. */
  readonly request: (platform: TestPlatform, cast: Cast) => object | Promise<object>;
  /** What whoever may call is answered. Default: ok. */
  readonly outcome?: Outcome;
  /** Where a caller is answered otherwise than the method's access says. */
  readonly except?: Partial<Record<CallerName, Outcome>>;
}

export const FOREIGN = "an admin of another organization, not naming one";

export const named = ({ company }: Cast) => ({ organization: company.name });
