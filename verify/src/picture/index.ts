/** A history as a picture, for reports and for whoever has to understand a violation. */
export { type PictureOptions, picture } from "./picture.js";
