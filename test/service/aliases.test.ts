import { expect, it } from "vitest";
import { endpointAt } from "../../src/service/aliases.ts";
import { endpoint, manifestOf } from "./manifests.ts";

it("finds an endpoint by the path that its service gave it", () => {
  const manifest = manifestOf(
    endpoint({ name: "predict", route: "/v1/predict" }),
    endpoint({ name: "again", route: "/v1/predict" }),
    endpoint({ name: "thief", route: "/plain" }),
    endpoint({ name: "plain" }),
  );
  const paths = ["/v1/predict", "/plain", "/predict", "/v1", ""];
  expect(paths.map((path) => endpointAt(manifest, path))).toEqual([
    "predict",
    ...[undefined, undefined, undefined, undefined],
  ]);
});
