import { expect, it } from "vitest";
import { placeText } from "../../src/console/app/pages/people/place-text.ts";

it("a loopback address is this machine where the page is of this machine, and else an address", () => {
  for (const address of ["::1", "127.0.0.1", "::ffff:127.0.0.1"]) {
    for (const host of ["localhost", "127.0.0.1", "[::1]"]) {
      expect(placeText(address, host)).toBe("this machine");
    }
    expect(placeText(address, "tessera.example.com")).toBe(address);
  }
  expect(placeText("203.0.113.7", "localhost")).toBe("203.0.113.7");
  expect(placeText("::1:5", "localhost")).toBe("::1:5");
});
