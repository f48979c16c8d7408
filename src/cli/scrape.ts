import { stringify } from "yaml";

/** What takes the place of a value where logs may keep what is written. */
const PLACEHOLDER = "<token>";

/**
 * What a Prometheus needs in its configuration to read an organization's
 * metrics: an entry of `scrape_configs`. Without `value`, a placeholder stands
 * for the token.
 */
export function scrapeConfig(endpoint: string, value: string | undefined): string {
  const { protocol, host, pathname } = new URL(endpoint);
  return stringify({
    scrape_configs: [
      {
        job_name: "tessera",
        scheme: protocol.slice(0, -1),
        honor_labels: true,
        metrics_path: `${pathname.replace(/\/$/, "")}/federate`,
        params: { "match[]": ['{__name__=~".+"}'] },
        authorization: { credentials: value ?? PLACEHOLDER },
        static_configs: [{ targets: [host] }],
      },
    ],
  });
}
