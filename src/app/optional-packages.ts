/**
 * Packages that few platforms need. They are optional peer dependencies: an installation from
 * npm goes without them, and a setting asks for them. The image and the tarball have them.
 */
import { ConfigError } from "../config/values.ts";

interface OptionalPackages {
  /** The setting that asks for them, and what for, as the subject of a sentence. */
  readonly asked: string;
  /** As `npm install` takes them. */
  readonly packages: readonly string[];
}

export const OPTIONAL_PACKAGES = {
  s3: {
    asked:
      "--blobs (TESSERA_BLOBS) or --model-buckets (TESSERA_MODEL_BUCKETS) names a bucket of S3",
    packages: ["@aws-sdk/client-s3@^3", "@aws-sdk/lib-storage@^3"],
  },
  tracing: {
    asked:
      "OTEL_EXPORTER_OTLP_ENDPOINT (or OTEL_EXPORTER_OTLP_TRACES_ENDPOINT) names a receiver of traces",
    packages: [
      "@opentelemetry/api@^1",
      "@opentelemetry/otlp-transformer@^0.301",
      "@opentelemetry/resources@^3",
      "@opentelemetry/sdk-trace@^3",
    ],
  },
} as const satisfies { readonly [feature: string]: OptionalPackages };

/**
 * Loads an adapter that imports optional packages. Rejects with a `ConfigError` that says what to
 * install where one of them is missing.
 */
export async function withOptionalPackages<Adapter>(
  feature: keyof typeof OPTIONAL_PACKAGES,
  load: () => Promise<Adapter>,
): Promise<Adapter> {
  const { asked, packages } = OPTIONAL_PACKAGES[feature];
  try {
    return await load();
  } catch (err) {
    const missing = missingPackage(err);
    if (missing === undefined || !packages.some((each) => each.startsWith(`${missing}@`))) {
      throw err;
    }
    throw new ConfigError(
      `${asked}, which needs packages that are not installed (${missing}); ` +
        `install them where tessera-platform is installed: npm install ${packages.join(" ")}`,
      { cause: err },
    );
  }
}

/** The package that an import did not find. */
function missingPackage(err: unknown): string | undefined {
  const { code, message } = err as Partial<NodeJS.ErrnoException>;
  return code === "ERR_MODULE_NOT_FOUND"
    ? /^Cannot find package '([^']+)'/.exec(message ?? "")?.[1]
    : undefined;
}
