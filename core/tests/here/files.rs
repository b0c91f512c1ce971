//! A builder of the files of a host below a folder, and the files of a host that a topology file describes.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use roundelay_machines::here::DriverGpu;
use roundelay_topology::host::Root;
use roundelay_topology::nccl::element::Element;
use tempfile::TempDir;

/// The files of a host.
pub(super) struct Files {
    folder: TempDir,
    /// The ports of switches so far, which have addresses of their own.
    ports: u32,
    gpus: u32,
}

impl Files {
    pub(super) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), ports: 0, gpus: 0 }
    }

    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(super) fn root(&self) -> Root {
        Root::new(self.folder.path()).unwrap()
    }

    /// Writes a file, and the folders above it.
    pub(super) fn write(&self, path: impl AsRef<Path>, text: impl AsRef<[u8]>) {
        let path = self.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Writes a file as the system does, with a newline.
    pub(super) fn line(&self, path: impl AsRef<Path>, text: &str) {
        self.write(path, format!("{text}\n"));
    }

    /// Makes a link to a path of the tree.
    pub(super) fn link(&self, path: &str, to: &str) {
        let from = self.path().join(path);
        fs::create_dir_all(from.parent().unwrap()).unwrap();
        let up = "../".repeat(path.matches('/').count());
        symlink(format!("{up}{to}"), from).unwrap();
    }

    /// Adds a PCI device below a folder with its files.
    pub(super) fn pci(&self, above: &str, busid: &str, files: &[(&str, &str)]) -> String {
        let folder = format!("{above}/{busid}");
        for (name, text) in files {
            self.line(format!("{folder}/{name}"), text);
        }
        fs::create_dir_all(self.path().join(&folder)).unwrap();
        self.link(&format!("sys/bus/pci/devices/{busid}"), &folder);
        if !self.path().join(&folder).join("subsystem").exists() {
            self.link(&format!("{folder}/subsystem"), "sys/bus/pci");
        }
        folder
    }

    /// Adds an interface that is up, of a device.
    pub(super) fn interface(&self, name: &str, speed: &str, device: Option<&str>) {
        let folder = format!("sys/class/net/{name}");
        self.line(format!("{folder}/flags"), "0x1003");
        self.line(format!("{folder}/speed"), speed);
        if let Some(device) = device {
            self.link(&format!("{folder}/device"), device);
        }
    }

    /// Adds cores of `threads` threads each: so many a cache, caches a memory node, and nodes, with the distances of each.
    pub(super) fn cores(&self, [each, caches, nodes]: [u32; 3], threads: u32, distances: &[&str]) {
        let cores = each * caches * nodes;
        self.line("sys/devices/system/cpu/online", &format!("0-{}", cores * threads - 1));
        for core in 0..cores {
            let (cache, node) = (core / each, core / each / caches);
            let list = |of: &dyn Fn(u32) -> bool| {
                let all = (0..cores * threads).filter(|cpu| of(cpu % cores));
                all.map(|cpu| cpu.to_string()).collect::<Vec<_>>().join(",")
            };
            for thread in 0..threads {
                let folder = format!("sys/devices/system/cpu/cpu{}", core + thread * cores);
                self.line(format!("{folder}/topology/core_cpus_list"), &list(&|c| c == core));
                self.line(format!("{folder}/topology/physical_package_id"), &node.to_string());
                self.line(format!("{folder}/cache/index3/level"), "3");
                let shared = list(&|c| c / each == cache);
                self.line(format!("{folder}/cache/index3/shared_cpu_list"), &shared);
            }
            let folder = format!("sys/devices/system/node/node{node}");
            self.line(format!("{folder}/cpulist"), &list(&|c| c / each / caches == node));
            if let Some(distances) = distances.get(node as usize) {
                self.line(format!("{folder}/distance"), distances);
            }
        }
    }

    /// Makes the files of the host that a topology file describes, and the facts of NVIDIA's driver.
    pub(super) fn of(system: &Element) -> (Self, Vec<DriverGpu>) {
        let mut files = Self::new();
        files.line("proc/sys/kernel/hostname", "host");
        files.line("proc/sys/kernel/random/boot_id", "c2c3dd66-f8c5-4c15-91db-750d41000000");
        let mut driver = Vec::new();
        for cpu in system.all("cpu") {
            let numaid = cpu.get("numaid").unwrap();
            let get = |name: &str| cpu.get(name).unwrap_or_default();
            let (vendor, family, model) = (get("vendor"), family(get("familyid")), get("modelid"));
            files.write(
                "proc/cpuinfo",
                format!("vendor_id\t: {vendor}\ncpu family\t: {family}\nmodel\t\t: {model}\n"),
            );
            let node = format!("sys/devices/system/node/node{numaid}");
            files.line(format!("{node}/cpumap"), get("affinity"));
            let complex =
                format!("sys/devices/pci{:04x}:00", 0x100 + numaid.parse::<u32>().unwrap());
            files.below(cpu, &complex, numaid, &mut driver);
        }
        (files, driver)
    }

    fn below(&mut self, above: &Element, path: &str, node: &str, driver: &mut Vec<DriverGpu>) {
        for nic in above.all("nic") {
            self.nic(nic, None);
        }
        for device in above.all("pci") {
            self.ports += 1;
            let port = format!("{path}/eeee:ee:{:02x}.0", self.ports);
            let busid = device.get("busid").unwrap().to_lowercase();
            let mut files = vec![("numa_node", node)];
            for (name, file) in [
                ("class", "class"),
                ("vendor", "vendor"),
                ("device", "device"),
                ("subsystem_vendor", "subsystem_vendor"),
                ("subsystem_device", "subsystem_device"),
                ("link_speed", "max_link_speed"),
                ("link_width", "max_link_width"),
            ] {
                files.extend(device.get(name).map(|text| (file, text)));
            }
            let folder = self.pci(&port, &busid, &files);
            for nic in device.all("nic") {
                self.nic(nic, Some(&folder));
            }
            for gpu in device.all("gpu") {
                self.gpu(gpu, &busid, driver);
            }
            self.below_all(device, &folder, node, driver);
        }
    }

    fn below_all(&mut self, above: &Element, path: &str, node: &str, driver: &mut Vec<DriverGpu>) {
        if above.all("pci").next().is_some() {
            let mut switches = above.clone();
            switches.children.retain(|child| child.tag == "pci");
            self.below(&switches, path, node, driver);
        }
    }

    fn nic(&self, nic: &Element, device: Option<&str>) {
        for net in nic.all("net") {
            let get = |name: &str| net.get(name).unwrap_or_default();
            let (name, speed) = (get("name"), get("speed"));
            if !name.starts_with("mlx") {
                self.interface(name, speed, device);
                continue;
            }
            let folder = format!("sys/class/infiniband/{name}");
            let guid = u64::from_str_radix(get("guid").trim_start_matches("0x"), 16).unwrap();
            let guid = format!("{guid:016x}");
            let words: Vec<_> = (0..4).map(|word| &guid[4 * word..4 * word + 4]).collect();
            self.line(format!("{folder}/node_guid"), &words.join(":"));
            let port = format!("{folder}/ports/{}", get("port"));
            self.line(format!("{port}/state"), "4: ACTIVE");
            let rate = format!("{} Gb/sec (4X HDR)", speed.parse::<u32>().unwrap() / 1000);
            self.line(format!("{port}/rate"), &rate);
            self.link(&format!("{folder}/device"), device.unwrap());
        }
    }

    fn gpu(&mut self, gpu: &Element, busid: &str, driver: &mut Vec<DriverGpu>) {
        if gpu.get("gdr") == Some("1") {
            fs::create_dir_all(self.path().join("sys/module/nvidia_peermem")).unwrap();
        }
        let sm: u32 = gpu.get("sm").unwrap().parse().unwrap();
        let Some(gcn) = gpu.get("gcn") else {
            let mut told = DriverGpu { busid: busid.to_owned(), sm, ..DriverGpu::default() };
            for link in gpu.all("nvlink") {
                let get = |name: &str| link.get(name).unwrap().to_owned();
                for _ in 0..get("count").parse().unwrap() {
                    told.nvlinks.push(get("target"));
                }
            }
            return driver.push(told);
        };
        self.gpus += 1;
        let folder = format!("sys/class/kfd/kfd/topology/nodes/{}", self.gpus);
        let hex = |text: &str| u32::from_str_radix(text, 16).unwrap();
        let [bus, device] = [hex(&busid[5..7]), hex(&busid[8..10])];
        // In old files 910 is gfx90a.
        let version = if gcn == "910" { 90_010 } else { 90_000 + gcn[1..].parse::<u32>().unwrap() };
        self.write(
            format!("{folder}/properties"),
            format!(
                "cpu_cores_count 0\nsimd_count {}\nsimd_per_cu 4\nvendor_id 4098\nlocation_id {}\ndomain {}\n\
                gfx_target_version {version}\n",
                sm * 4,
                bus << 8 | device << 3,
                hex(&busid[..4]),
            ),
        );
        for (at, link) in gpu.all("xgmi").enumerate() {
            let count: u32 = link.get("count").unwrap().parse().unwrap();
            let target = link.get("target").unwrap();
            self.write(format!("{folder}/io_links/{at}/to"), target);
            let of = format!("type 11\nmin_bandwidth 50000\nmax_bandwidth {}\n", 50_000 * count);
            self.write(format!("{folder}/io_links/{at}/properties"), of);
        }
        self.write(format!("{folder}/busid"), busid);
    }

    /// Writes the numbers of the nodes at which AMD's links end, when all nodes are there.
    pub(super) fn join(&self) {
        let nodes = self.path().join("sys/class/kfd/kfd/topology/nodes");
        let read = |path: &Path| fs::read_to_string(path).unwrap();
        let all: Vec<_> = (1..=self.gpus).map(|node| nodes.join(node.to_string())).collect();
        for node in &all {
            for link in fs::read_dir(node.join("io_links")).unwrap() {
                let link = link.unwrap().path();
                let to = read(&link.join("to"));
                let at = all.iter().position(|node| read(&node.join("busid")) == to).unwrap() + 1;
                let of = read(&link.join("properties"));
                fs::write(link.join("properties"), format!("{of}node_to {at}\n")).unwrap();
            }
        }
    }
}

/// Returns the family as the system writes it: NCCL up to 2.30 writes 175 for 25.
pub(super) fn family(text: &str) -> String {
    match text {
        "175" => "25".to_owned(),
        _ => text.to_owned(),
    }
}
