/** Federation: the one implementation behind `/federate` and FederationService. */
import { AddedLabels } from "./external-labels.ts";
import { ownSamples, type SampleSource } from "./families.ts";
import { federate } from "./federate.ts";
import type { ForeignMetrics } from "./foreign-samples.ts";
import type { Metrics } from "./metrics.ts";
import { parseSelectors } from "./selector/list.ts";
import type { Upstream } from "./upstream.ts";

interface FederationOptions {
  readonly metrics: Metrics;
  /** Metrics of other nodes; absent on a single node. */
  readonly foreign?: ForeignMetrics;
  /** A Prometheus that is queried instead of this node. */
  readonly upstream?: Upstream;
  readonly externalLabels?: { readonly [name: string]: string };
  readonly now: () => number;
}

/** The organization whose metrics a call reads. */
export interface Monitored {
  readonly organizationId: string;
  readonly organization: string;
}

interface FederationQuery extends Monitored {
  /** Selectors as text. */
  readonly match: readonly string[];
  readonly signal?: AbortSignal;
}

export class Federation {
  readonly #options: FederationOptions;
  readonly #own: SampleSource;
  readonly #added: AddedLabels;

  /** Throws an Error when an external label's name is invalid. */
  constructor(options: FederationOptions) {
    this.#options = options;
    this.#own = ownSamples(options.metrics);
    this.#added = new AddedLabels(options.externalLabels);
  }

  /**
   * Returns the selected samples in Prometheus' text format, as a stream.
   * Rejects with a MatchError before anything else is read, with an
   * UpstreamError, and with errors of reading the other nodes' samples.
   */
  async answer(query: FederationQuery): Promise<AsyncIterable<string | Uint8Array>> {
    const { organizationId, organization, match, signal } = query;
    const { foreign, upstream, now } = this.#options;
    const selectors = await parseSelectors(match);
    if (upstream !== undefined) {
      return upstream.federate({ organization, selectors, ...(signal && { signal }) });
    }
    const others = selectors.length === 0 ? undefined : await foreign?.read(organizationId);
    return federate({
      organizationId,
      selectors,
      sources: others === undefined ? [this.#own] : [this.#own, others],
      nowMs: now(),
      added: this.#added,
    });
  }
}
