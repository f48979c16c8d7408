/** The default theme with the fonts of the reader's system: the site loads none. */
export { default } from "vitepress/theme-without-fonts";

import "./style.css";
