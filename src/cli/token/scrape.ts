import { stringify } from "yaml";

/** Stands for the value where logs may keep the output. */
const PLACEHOLDER = "<token>";

/**
 * Writes the entry of `scrape_configs` with which a Prometheus reads an
 * organization's metrics. Without `value` it contains a placeholder for the
 * token.
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
