/** The default theme with the fonts of the reader's system: the site loads none. */
import type { Theme } from "vitepress";
import DefaultTheme from "vitepress/theme-without-fonts";

import "./style.css";

/** Such as `#TaskService.GetTask`: a place in the reference of the API, which was at `/docs` once. */
const IN_REFERENCE = /^#[A-Z][A-Za-z]*Service(?:\.[A-Za-z]+)?$/;

export default {
  extends: DefaultTheme,
  enhanceApp: () => {
    if (typeof window !== "undefined" && IN_REFERENCE.test(window.location.hash)) {
      const { hash, pathname } = window.location;
      if (pathname === "/docs/") {
        window.location.replace(`/reference${hash}`);
      }
    }
  },
} satisfies Theme;
