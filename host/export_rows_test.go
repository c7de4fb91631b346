package host

import "encoding/json"

// PageUpdate is the update for a page that is up to date as of a version.
func (h *Host) PageUpdate(version int64) (data []byte, now int64) {
	h.mu.Lock()
	use := h.holdLocked(viewer{Principal: Principal{Role: RoleObserver}}) // a page's goes on while the page does
	h.mu.Unlock()
	u, now, _ := h.updateSince(use, version)
	data, _ = json.Marshal(u)
	return data, now
}

// PageRows is the whole present list, without rows encoded before.
func (h *Host) PageRows() []byte {
	data, _ := json.Marshal(h.rows(Principal{Role: RoleObserver}))
	return data
}

// Remove takes a fed terminal out.
func (f *Feed) Remove() {
	f.h.mu.Lock()
	defer f.h.mu.Unlock()
	f.h.removeLocked(f.t)
}

// BuiltWith sets whether the host was built with the page's scripts.
func (h *Host) BuiltWith(scripts bool) { h.scripts = scripts }
