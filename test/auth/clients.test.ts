import { expect, it } from "vitest";
import { describeClient } from "../../src/auth/session-cookie.ts";

it.each([
  [
    "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
    "Firefox 140 on Linux",
  ],
  [
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36 Edg/140.0.0.0",
    "Edge 140 on Windows",
  ],
  [
    "Mozilla/5.0 (Linux; Android 15) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Mobile Safari/537.36",
    "Chrome 140 on Android",
  ],
  [
    "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Mobile Safari/537.36 EdgA/139.0.0.0",
    "Edge 139 on Android",
  ],
  [
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36 OPR/124.0.0.0",
    "Opera 124 on Linux",
  ],
  [
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.0 Mobile/15E148 Safari/604.1",
    "Safari 18 on iPhone",
  ],
  [
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.0 Safari/605.1.15",
    "Safari 18 on macOS",
  ],
  ["curl/8.9.1", "curl 8"],
  ["Safari/605.1.15", "Safari"],
  ["Firefox/99999.0", "Firefox 9999"],
  ["node", "Node.js"],
  ["", ""],
  ["<script>alert(1)</script>\u202e", ""],
])("describes %j as %j", (userAgent, description) => {
  expect(describeClient(userAgent)).toBe(description);
});

it("looks at the beginning of a header that is too long", () => {
  expect(describeClient(`${"x".repeat(100_000)} Firefox/140.0`)).toBe("");
});
