// Makes the search work in pages that a browser opens as files. On such pages, browsers load no JSON and start no web workers.
// So the search index is a script (search_index.js, which search.py writes), and this script runs the theme's search worker in a
// hidden frame.
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
