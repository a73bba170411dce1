// What the page knows, and who wants to hear of changes.
import { get } from "./api.js";

export const state = {
  session: null, pictures: [], types: null, current: null, points: new Map(), gain: 0, keypoints: 1,
};

const listeners = [];
export const onChange = listener => listeners.push(listener);
export const changed = () => listeners.forEach(listener => listener());

export const typeOf = number => state.types?.types.find(one => one.number === number);

// Points of a picture that the sliders leave: those that people added always stay.
export function kept(found) {
  const strong = found.points.filter(one => one.added || one.gain >= state.gain);
  const most = strong.filter(one => !one.added).sort((a, b) => b.score - a.score).slice(0, state.keypoints);
  const chosen = new Set(most.map(one => one.instance));
  return strong.filter(one => one.added || chosen.has(one.instance));
}

export const sliders = () => `min_gain=${state.gain}&keypoints=${state.keypoints}`;

// After a change of names: types as the server gave them, and the points of the pictures anew when they are next shown.
export async function setTypes(types) {
  state.types = types;
  const looked = [...state.points.keys()];
  state.points.clear();
  if (state.current !== null) await look(state.current);
  changed();
  for (const number of looked) await look(number);
  changed();
}

export async function refreshTypes() {
  state.types = await get(`/api/types?${sliders()}`);
  changed();
}

export async function look(number) {
  if (!state.points.has(number)) state.points.set(number, await get(`/api/pictures/${number}/points`));
  return state.points.get(number);
}
