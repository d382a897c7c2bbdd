//! Reaching whoever listens: Quern's recorder, preloaded or in the engine, or a memory checker.

/// Who listens to this program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listener {
    /// No tool.
    Nobody,
    /// Quern's recorder (`--tool=heap`, `--tool=massif`).
    Recorder,
    /// memcheck, Quern's or Valgrind's, or another tool of theirs.
    Checker,
}

/// Finds out who listens. The answer is found once and kept.
pub fn listener() -> Listener {
    imp::listener()
}

pub(crate) const MARK: usize = 0x5148_0001;
pub(crate) const ASK: usize = 0x5148_0002;
pub(crate) const ALLOCATED: usize = 0x5148_0003;
pub(crate) const FREED: usize = 0x5148_0004;
pub(crate) const RESIZED: usize = 0x5148_0005;
pub(crate) const CHUNK: usize = 0x5148_0006;

pub(crate) const BLOCK_ALLOCATED: usize = 0x1301;
pub(crate) const BLOCK_FREED: usize = 0x1302;
pub(crate) const BLOCK_RESIZED: usize = 0x130b;
pub(crate) const MAKE_NOACCESS: usize = 0x4d43_0000;
pub(crate) const MAKE_DEFINED: usize = 0x4d43_0002;

/// Sends a request to the recorder, wherever it is. 0: it does not listen, or not now.
pub(crate) fn tell(code: usize, words: [usize; 3]) -> usize {
    imp::tell(code, words)
}

/// Sends a request to the tool that translates this program. 0: there is none.
pub(crate) fn request(code: usize, words: [usize; 4]) -> usize {
    imp::request(code, words)
}

#[cfg(all(target_arch = "x86_64", target_os = "linux", target_pointer_width = "64", not(miri)))]
mod imp {
    use super::Listener;
    use std::arch::asm;
    use std::os::raw::{c_int, c_ulong};
    use std::sync::atomic::{AtomicPtr, AtomicU8, Ordering};

    const LISTENS: usize = 0x5148_0000;
    const RUNNING: usize = 0x1001;
    const PRCTL: c_int = 0x5148_4150;

    type Request = unsafe extern "C" fn(c_ulong, *const c_ulong) -> c_ulong;

    /// What the preloaded recorder fills in when it answers a call of prctl that the kernel would
    /// refuse.
    #[repr(C)]
    struct Link {
        version: c_ulong,
        request: Option<Request>,
    }

    extern "C" {
        fn prctl(option: c_int, ...) -> c_int;
        fn __errno_location() -> *mut c_int;
    }

    const UNKNOWN: u8 = 0;
    const NOBODY: u8 = 1;
    const PRELOADED: u8 = 2;
    const ENGINE: u8 = 3;
    const CHECKER: u8 = 4;

    static FOUND: AtomicU8 = AtomicU8::new(UNKNOWN);
    /// The preloaded recorder's function, as a `Request`.
    static LINKED: AtomicPtr<()> = AtomicPtr::new(std::ptr::null_mut());

    /// The instructions that Valgrind defined: four rotations that add up to none, and an exchange
    /// that changes nothing. Without a tool the answer is the default, 0.
    pub fn request(code: usize, words: [usize; 4]) -> usize {
        let all = [code, words[0], words[1], words[2], words[3], 0];
        let answer: usize;
        unsafe {
            asm!(
                "rol rdi, 3",
                "rol rdi, 13",
                "rol rdi, 61",
                "rol rdi, 51",
                "xchg rbx, rbx",
                inlateout("rdx") 0usize => answer,
                in("rax") all.as_ptr(),
                options(nostack)
            );
        }
        answer
    }

    #[cold]
    fn find() -> u8 {
        let answer = request(LISTENS, [0; 4]);
        let found = if answer == 1 {
            ENGINE
        } else if answer != 0 || request(RUNNING, [0; 4]) != 0 {
            CHECKER
        } else {
            let mut link = Link { version: 1, request: None };
            let status = unsafe {
                let errno = __errno_location();
                let saved = *errno;
                let status = prctl(PRCTL, &mut link as *mut Link, 0 as c_ulong, 0 as c_ulong, 0 as c_ulong);
                *errno = saved;
                status
            };
            match link.request {
                Some(function) if status == 0 => {
                    LINKED.store(function as *mut (), Ordering::Release);
                    PRELOADED
                }
                _ => NOBODY,
            }
        };
        FOUND.store(found, Ordering::Release);
        found
    }

    fn found() -> u8 {
        match FOUND.load(Ordering::Acquire) {
            UNKNOWN => find(),
            found => found,
        }
    }

    pub fn listener() -> Listener {
        match found() {
            PRELOADED | ENGINE => Listener::Recorder,
            CHECKER => Listener::Checker,
            _ => Listener::Nobody,
        }
    }

    pub fn tell(code: usize, words: [usize; 3]) -> usize {
        match found() {
            PRELOADED => {
                let all = [code, words[0], words[1], words[2], 0, 0].map(|word| word as c_ulong);
                // SAFETY: only find() stores here, before it says so, and only a `Request`.
                let function: Request = unsafe { std::mem::transmute(LINKED.load(Ordering::Acquire)) };
                unsafe { function(0, all.as_ptr()) as usize }
            }
            ENGINE => request(code, [words[0], words[1], words[2], 0]),
            _ => 0,
        }
    }
}

#[cfg(not(all(target_arch = "x86_64", target_os = "linux", target_pointer_width = "64", not(miri))))]
mod imp {
    use super::Listener;

    pub fn listener() -> Listener {
        Listener::Nobody
    }

    pub fn tell(_code: usize, _words: [usize; 3]) -> usize {
        0
    }

    pub fn request(_code: usize, _words: [usize; 4]) -> usize {
        0
    }
}
