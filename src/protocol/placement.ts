/** Placement as a service declares it: which machines run it, or one of its endpoints. */

/** Labels that a service, an endpoint or a deployment may require. */
const MAX_REQUIRED_LABELS = 32;

const LABEL_NAME = /^[A-Za-z0-9](?:[A-Za-z0-9._/-]{0,61}[A-Za-z0-9])?$/;
const REQUIRED_VALUE = /^(?:\*|[A-Za-z0-9](?:[A-Za-z0-9._-]{0,253}[A-Za-z0-9])?)$/;

const PLACES: ReadonlySet<unknown> = new Set(["local", "remote", "any"]);

/** Members of a service and of an endpoint; those of the endpoint go first. */
export interface PlacementManifest {
  /** Labels that a machine must have; `*` stands for any value. Default: none. */
  readonly requires?: { readonly [label: string]: string };
  /**
   * Who brings the workers: the nodes (`local`), machines that join (`remote`), or both
   * (`any`). Default for an endpoint: that of its service; for a service: `any`.
   */
  readonly place?: "local" | "remote" | "any";
}

/** What is wrong with a placement, which is not trusted; undefined for a valid one. */
export function faultOfPlacement({ requires, place }: Unchecked): string | undefined {
  if (place !== undefined && !PLACES.has(place)) {
    return 'place must be "local", "remote" or "any"';
  }
  if (requires === undefined) {
    return undefined;
  }
  if (typeof requires !== "object" || requires === null || Array.isArray(requires)) {
    return 'requires must have labels with their values, such as { gpu: "*" }';
  }
  const labels = Object.entries(requires);
  if (labels.length > MAX_REQUIRED_LABELS) {
    return `requires may have at most ${MAX_REQUIRED_LABELS} labels`;
  }
  for (const [name, value] of labels) {
    const fault = faultOfLabel(name, value);
    if (fault !== undefined) {
      return `requires: label ${JSON.stringify(name.slice(0, 64))} ${fault}`;
    }
  }
  return undefined;
}

interface Unchecked {
  readonly requires?: unknown;
  readonly place?: unknown;
}

function faultOfLabel(name: string, value: unknown): string | undefined {
  if (!LABEL_NAME.test(name)) {
    return "must have a name of at most 63 letters, digits, dots, slashes, hyphens and underscores, such as gpu";
  }
  return typeof value === "string" && REQUIRED_VALUE.test(value)
    ? undefined
    : "must have a value of letters, digits, dots, hyphens and underscores, such as h200, or * for any";
}
