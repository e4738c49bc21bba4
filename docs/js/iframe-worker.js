/* Search where the site is opened as files. Browsers start no worker from file://, so a hidden frame takes its
   place, with the interface of one; the theme knows it by its name. On a server nothing changes. */
if (location.protocol === "file:") {
  window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inside = this.frame.contentWindow;
      this.heard = event => {
        if (event.source !== inside) return;
        this.dispatchEvent(new MessageEvent("message", { data: event.data }));
      };
      addEventListener("message", this.heard);
      const scripts = `
        self.postMessage = data => parent.postMessage(data, "*");
        self.importScripts = (...urls) => urls.reduce((before, url) => before.then(() => new Promise((done, failed) => {
          const script = document.createElement("script");
          script.src = url; script.onload = done; script.onerror = failed;
          document.body.append(script);
        })), Promise.resolve());`;
      this.ready = new Promise(done => { this.frame.onload = done; });
      inside.document.open();
      inside.document.write(`<body><script>${scripts}</` + `script><script src="${url}"></` + "script></body>");
      inside.document.close();
    }
    postMessage(data) {
      this.ready.then(() => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data })));
    }
    terminate() {
      removeEventListener("message", this.heard);
      this.frame.remove();
    }
  };
  window.Worker = window.IFrameWorker;
}
