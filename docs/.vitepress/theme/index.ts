/** The default theme with the fonts of the reader's system: the site loads none. */
import type { Theme } from "vitepress";
import DefaultTheme from "vitepress/theme-without-fonts";

import "./style.css";

/** Such as `#TaskService.GetTask`: a place in the reference of the API, which was at `/docs` once. */
const IN_REFERENCE = /^#[A-Z][A-Za-z]*Service(?:\.[A-Za-z]+)?$/;

/**
 * How much a page counts in the search: guides come before what lists everything, which would win
 * by its many headings. It is set here, as the configuration holds no functions for the browser.
 */
const WEIGHTS: readonly (readonly [page: RegExp, weight: number])[] = [
  [/\/(?:http|limits|configuration|changelog)\.html/, 0.2],
  [/\/(?:decisions\/|architecture|contributing|benchmarks|glossary)/, 0.3],
  [/\/(?:comparison|coming-from-|troubleshooting|security)/, 0.6],
];

const weightOf = (page: string): number => WEIGHTS.find(([of]) => of.test(page))?.[1] ?? 1;

export default {
  extends: DefaultTheme,
  enhanceApp: ({ siteData }) => {
    const { search } = siteData.value.themeConfig;
    search.options = { miniSearch: { searchOptions: { boostDocument: weightOf } } };
    if (typeof window !== "undefined" && IN_REFERENCE.test(window.location.hash)) {
      const { hash, pathname } = window.location;
      if (pathname === "/docs/") {
        window.location.replace(`/reference${hash}`);
      }
    }
  },
} satisfies Theme;
