// Search in pages that are opened as files. For these, browsers load no JSON and start no workers: search_index.js is the index as a
// script (search.py), and the theme's worker, which searches, runs in a hidden frame.
var __search;
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.body.appendChild(document.createElement("iframe"));
      frame.hidden = true;
      const inside = frame.contentWindow;
      inside.postMessage = data => this.dispatchEvent(new MessageEvent("message", { data }));
      this.inside = new Promise(loaded => {
        const script = frame.contentDocument.createElement("script");
        script.src = url;
        script.onload = () => loaded(inside);
        frame.contentDocument.body.appendChild(script);
      });
    }
    postMessage(data) {
      this.inside.then(inside => inside.dispatchEvent(new MessageEvent("message", { data })));
    }
  };
}
