/** A history as a picture, for reports and to understand a violation. */
export { type PictureOptions, picture } from "./picture.js";
