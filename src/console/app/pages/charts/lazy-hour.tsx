/** The last hour in charts, which is loaded with what draws them once a page shows it. */
import { lazyRouteComponent } from "@tanstack/react-router";
import { Suspense } from "react";
import { loaded } from "../../api/loaded.ts";
import type { AskedMetrics } from "../../api/metrics.ts";
import { Loading } from "../../ui/loading.tsx";

const LoadedHour = lazyRouteComponent(() => loaded(import("./last-hour.tsx")));

export function LastHour(of: Pick<AskedMetrics, "organization" | "deployment">) {
  return (
    <Suspense fallback={<Loading />}>
      <LoadedHour {...of} />
    </Suspense>
  );
}
